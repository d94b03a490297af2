# gcn_0::gcn_0 is the shared library, gcn_0::static the other one.
if(NOT TARGET gcn_0::gcn_0)
  add_library(gcn_0::gcn_0 SHARED IMPORTED)
  set_target_properties(gcn_0::gcn_0 PROPERTIES
    IMPORTED_LOCATION "${CMAKE_CURRENT_LIST_DIR}/libgcn_0.so.0"
    IMPORTED_SONAME libgcn_0.so.0)
  add_library(gcn_0::static STATIC IMPORTED)
  set_target_properties(gcn_0::static PROPERTIES
    IMPORTED_LOCATION "${CMAKE_CURRENT_LIST_DIR}/libgcn_0.a"
    IMPORTED_LINK_INTERFACE_LANGUAGES C)
  target_include_directories(gcn_0::gcn_0 INTERFACE "${CMAKE_CURRENT_LIST_DIR}" [=[/work/h-22b/runtime/include]=])
  target_include_directories(gcn_0::static INTERFACE "${CMAKE_CURRENT_LIST_DIR}" [=[/work/h-22b/runtime/include]=])
  target_link_libraries(gcn_0::static INTERFACE [=[/work/h-22b/build/libgnnrt_cuda.a]=] [=[/work/h-22b/build/libgnnrt.a]=] [=[-L/usr/local/cuda/lib64]=] [=[-Wl,-rpath,/usr/local/cuda/lib64]=] [=[-lcudart_static]=] [=[-lstdc++]=] [=[-ldl]=] [=[-lrt]=] [=[-Wl,--as-needed]=] [=[-ldnnl]=] [=[-lmetis]=] [=[-lgomp]=] [=[-pthread]=] [=[-lz]=] [=[-lm]=])
endif()
